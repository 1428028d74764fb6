"""Sentences of our own that the classifier of names is trained on, beside the marked documents.

`{P}` becomes a person, `{F}` a first name, `{L}` a last name, `{G}` a place, `{O}` an organisation, `{N}` a
number.
"""

PERSONAL = """
Please forward the signed contract to {P} before noon
The invoice was approved by {P} on behalf of {O}
Dear {F}, thank you for your application
Kind regards, {P}
Best, {F}
Hi {F}, can you review my draft?
Hello {P}, your order has shipped
Employee {P} requested two weeks of leave
Patient {P} was admitted to the hospital in {G}
{P} was diagnosed with diabetes and takes insulin
Our customer {P} complained about the delivery
The package for {L} is still at the depot in {G}
I spoke with {F} yesterday about the mortgage
Can you write a birthday card for {F}?
write a polite email to {F} about the rent
Summarize the meeting notes: {F} presented the budget, {F} took the minutes
{L} et al. argue that the method fails
According to {P}, the merger will close in spring
The suspect, {P}, was last seen near {G}
{P} lives in {G} with two children
she works for {O} in {G}
Draft a reference letter for {P}, who worked at {O}
{P} ({O}) joined the call at nine
Translate this message from {F} to {F}
Book a table under the name {L}
The tenant, {P}, owes three months of rent
my neighbour {F} plays drums at night
my boss {F} {L} rejected my request
my wife {F} and our son {F}
The account holder is {P}
name: {P}
Customer: {P}
Contact: {P}, {O}
Attn: {P}
cc {F}, {F} and {F}
From: {P}
To: {P}
Signed, {P}
{P}
{F}
{P}, {G}
{O}
{G}
{F} said that the landlord would pay
{P} transferred the money to {P}
Is {F} coming to the wedding?
{F} and {F} are getting divorced
{F}'s salary is higher than {F}'s
{L}'s lawyer called again
What did {P} say in the interview?
Who is {P}?
tell {F} that I will be late
remind me to call {F} tomorrow
ask {F} whether the car is ready
{P} passed the exam with distinction
{P} failed the background check
Witness {P} testified for two hours
The defendant {P} pleaded guilty in {G}
{P} flew from {G} to {G}
We are opening an office in {G}
I grew up in {G}
the weather in {G} is terrible
flights to {G} are expensive
He is originally from {G} but moved to {G}
My parents retired to {G}
I was stopped at the border in {G}
I live near {G}
we live in {G}
Our branch in {G} was robbed
The conference takes place in {G} this year
{G} is beautiful in autumn
Next stop: {G}
He emigrated from {G} as a child
{O} announced layoffs
{O} has hired {P} as director
I used to be a manager at {O}
My employer is {O}
She left {O} to study in {G}
{O} sued {O} over patents
the {O} website is down
Shares of {O} fell sharply
He was fired from {O}
I bought it at {O} in {G}
{P} of {O} chairs the board
Mr {L} is out of office
Ms {L} will join us
Dr {L} prescribed antibiotics
Professor {L} teaches law in {G}
Captain {L} signed the report
Judge {L} adjourned the hearing
Sir {F} {L} opened the bridge
uncle {F} is sick
aunt {F} sends her love
Starring {P} and {P}
Directed by {P}
Written by {P} and sung by {F}
a novel by {P}
the {L} family moved out
{F} is my best friend
{F} never answers my messages
{F} was the first to arrive
why did {F} leave so early?
where does {F} work?
have you met {P}?
do you know {P}?
I am {P}
I'm {F} from {O}
this is {F} speaking
This is {P} calling from {O}
call me {F}
you can call me {F}
her name is {P}
his name is {F}
their names are {F}, {F} and {F}
the beneficiary is {P}
registered to {P}
made out to {P}
on behalf of {P}
next of kin: {P}
Emergency contact {P}
Guests: {F}, {F}, {F}, {F}
Attendees: {P}; {P}; {P}
{P} <placeholder>
{F} {L}, {N} years, {G}
user {P} logged in from {G}
{P} has been promoted
congratulations {F}!
Happy birthday {F}!
Thanks {F}
sorry {F}, I forgot
RIP {P}
Meine Kollegin {P} wohnt in {G}
Sehr geehrte Frau {L}
Sehr geehrter Herr {L}
Herr {L} arbeitet bei {O}
Ich heiße {P} und komme aus {G}
Je m'appelle {P} et j'habite à {G}
Madame {L} travaille chez {O}
Monsieur {L} habite à {G}
Me llamo {P} y vivo en {G}
El señor {L} trabaja en {O}
Mi chiamo {P} e vivo a {G}
La signora {L} abita a {G}
Mijn naam is {P} en ik woon in {G}
De heer {L} werkt bij {O}
Meu nome é {P} e moro em {G}
Nazywam się {P}
""".strip().splitlines()

CLEAN = """
Describe this picture in one sentence
What is shown in the image?
Generate a caption for the photo
Summarize the quarterly report in three bullet points
Compare revenue growth with the previous year
Extract all tables from the document
Classify the sentiment of this review: the product broke after two days
Write a Python function that sorts a list of dictionaries by key
Explain how garbage collection works
What is the difference between a process and a thread?
Translate the following sentence into French
Give me a recipe for vegetable soup
How many calories are in an apple?
What is the capital gains tax rate?
Is the traffic heavy on the ring road right now?
Count the cars in the frame
Detect objects in the video
Is the machine vibrating more than usual?
Turn the lights on in the kitchen
Set a timer for ten minutes
What is the weather like today?
Play some relaxing music
The battery drains too fast since the last update
The delivery was late and the box was damaged
Great phone, terrible camera
I love this restaurant, the staff is friendly
The hotel room was dirty and loud
My screen is cracked, can it be repaired?
How do I reset my password?
Where can I download the invoice?
The app crashes when I open the settings
I want to cancel my subscription
Do you offer student discounts?
What are your opening hours?
Which plan includes unlimited storage?
Please refund my last order
The discount code does not work
Can I change the delivery date?
The website shows an error at checkout
How long does shipping take?
Solve the equation for x
Prove that the sum of two even numbers is even
What is the boiling point of water?
Explain photosynthesis to a child
What causes inflation?
List three advantages of solar energy
Write a short poem about autumn
Suggest a title for an article about remote work
Rewrite this paragraph in a formal tone
Fix the grammar mistakes in the text below
Is this statement true or false?
Which of the following is correct?
Choose the best answer
The patient should take the medicine twice a day
Regular exercise lowers blood pressure
The contract may be terminated with thirty days notice
The court dismissed the appeal
Interest rates rose by half a percent
Net income increased while operating costs fell
Free cash flow was negative in the second quarter
The merger is subject to regulatory approval
Sensor reading out of range
Temperature alarm in cold room two
Conveyor belt stopped unexpectedly
Pump pressure below threshold
Error: connection refused
Warning: disk usage above ninety percent
The build failed because a dependency is missing
Add unit tests for the parser
Refactor the module and update the documentation
SELECT the name of the column with the largest sum
The quick brown fox jumps over the lazy dog
WHAT IS GOING ON WITH MY ORDER
PLEASE HELP ME AS SOON AS POSSIBLE
HOW DO I RETURN AN ITEM
Why Is My Payment Still Pending
Terms and Conditions
Frequently Asked Questions
Annual General Meeting
Privacy Policy
Quarterly Financial Report
Executive Summary
Table of Contents
Thank you for your help
Good morning, I have a question
Hello, I need some support
Yes, please
No, thanks
OK
Hi there
Not sure what you mean
Happy New Year!
Merry Christmas and a happy new year
See you on Monday
The meeting is on Thursday afternoon
Let us know by Friday
Our office is closed in August
Machine learning models need training data
Large language models can hallucinate
The API returns JSON
Upload the PDF or the CSV file
Connect via USB or Bluetooth
Restart the router and check the WLAN
The GPU runs out of memory
HTTP status code four hundred and four
Deep learning, computer vision, speech recognition
Wie hoch sind die Gebühren für eine Überweisung?
Wo finde ich meine Rechnung?
Bitte fassen Sie den Text zusammen
Mein Paket ist noch nicht angekommen
Das Gerät lässt sich nicht einschalten
Können Sie mir bitte helfen?
Quel est le prix de l'abonnement ?
Comment puis-je annuler ma commande ?
Le colis n'est pas encore arrivé
Merci de résumer ce document
¿Cuánto cuesta el envío?
¿Cómo puedo cambiar mi contraseña?
El paquete no ha llegado todavía
Resume el informe en tres puntos
Quanto costa la spedizione?
Come posso annullare l'ordine?
Il pacco non è ancora arrivato
Hoeveel kost de verzending?
Hoe kan ik mijn bestelling annuleren?
Quanto custa o frete?
Como posso cancelar o pedido?
""".strip().splitlines()
